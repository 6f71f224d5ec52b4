"""`python -m lab.benchmarks.rotation_tables`: the measured tables of docs/metrics.md, from JSON."""

from pathlib import Path

from lab.benchmarks.report import load, table

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def cost(results: dict) -> str:
    """A step with each metric at d = 784, against `trotter`."""
    if "rotations" not in results:
        return "No result is kept yet."
    rows = [
        [row["name"], f"{row['parameters']:,}", row["milliseconds"], row["ratio_to_trotter"]]
        for row in results["rotations"]["rows"]
    ]
    return table(["metric", "parameters", "ms a step", "× trotter"], rows)


def reach(results: dict) -> str:
    """How near each family comes to a random rotation of ℝ¹⁶."""
    rows = [
        [row["name"], str(row["depth"] or "–"), row["parameters"], row["error"]]
        for row in results["expressivity"]["rows"]
    ]
    return table(["family", "depth", "parameters", "distance"], rows)


def filled(text: str, results: dict) -> str:
    """The page with its tables in place."""
    for name, made in (("cost", cost(results)), ("reach", reach(results))):
        before, rest = text.split(f"<!-- {name} -->\n")
        after = rest.split(f"<!-- /{name} -->")[1]
        text = f"{before}<!-- {name} -->\n{made}\n<!-- /{name} -->{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), load()), encoding="utf-8")
