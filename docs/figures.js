/* Draws the figures of the explorer, which its cells leave as JSON; with them their frames, sliders and hovering. */
addEventListener("DOMContentLoaded", () => {
    for (const place of document.querySelectorAll("div[data-figure]")) {
        const figure = JSON.parse(place.dataset.figure), config = {responsive: true, displaylogo: false};
        Plotly.newPlot(place.appendChild(document.createElement("div")), {...figure, config});
    }
});
