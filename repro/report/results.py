"""The evidence of claims as sentences of a results notebook quote it."""

from pandas import DataFrame

from repro.recipe import choose


class Evidence:
    """Verdicts and numbers of claims by their ids, of `repro.papers.judged`."""

    def __init__(self, claims: DataFrame, numbers: DataFrame) -> None:
        self._verdicts = claims.set_index("id")["verdict"].to_dict()
        self._numbers = numbers.set_index(["id", "compared"]).to_dict("index")

    def verdicts(self, *names: str) -> list[str]:
        """Those of these claims."""
        return [self._verdicts[choose("claim", name, self._verdicts)] for name in names]

    def value(self, name: str, compared: str) -> float:
        """A number of a claim; ValueError names those that it has."""
        known = [what for claim, what in self._numbers if claim == name]
        return self._numbers[name, choose(f"comparison of {name}", compared, known)]["value"]

    def words(self, name: str, compared: str) -> str:
        """A difference of a claim with its standard error and two-sided p: "+17.5, s.e. 1.1, p < 0.001"."""
        value, number = self.value(name, compared), self._numbers[name, compared]
        p = "p < 0.001" if number["p"] < 0.001 else f"p = {number['p']:.3f}"
        return f"{value:+.1f}, s.e. {number['error']:.1f}, {p}"

    def listed(self, *names: str) -> str:
        """Claims with their verdicts in one line: "S4 holds, S6 undecided"."""
        return ", ".join(f"{name} {verdict}" for name, verdict in zip(names, self.verdicts(*names), strict=True))
