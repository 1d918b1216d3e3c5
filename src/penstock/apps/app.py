"""What an app is, and how it is found by name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from penstock.apps.inputs import BYTES_PER_ROW
from penstock.core.dataflow import Alternate, Operator
from penstock.core.errors import BadInput, unknown

Transform = Callable[[DataFrame], DataFrame]
Generate = Callable[[SparkSession, int, int], DataFrame]


@dataclass(frozen=True, slots=True)
class Variant:
    """One implementation of an app; its cost, value and selectivity are relative to those of the app's first.

    Those with the same `state` go on from one checkpoint: grouped by the same keys, into the same columns. Spark
    refuses other columns; two binary ones, such as a set and a sketch, are the same to it and are not.
    """

    name: str
    transform: Transform
    cost: float = 1.0
    value: float = 1.0
    selectivity: float = 1.0
    state: str = ""


@dataclass(frozen=True, slots=True)
class App:
    """A streaming job: rows come in as `value` (text) and `timestamp`; what `transform` returns goes to a sink."""

    name: str
    about: str
    transform: Transform
    generate: Generate
    """Rows to feed it with: `generate(spark, rows, seed)` has one column `value`."""
    output_mode: str = "update"
    paper: str = ""
    variants: tuple[Variant, ...] = ()
    """Where there are several; `transform` is that of the first."""

    def __post_init__(self) -> None:
        if self.variants and self.variants[0].transform is not self.transform:
            raise BadInput(f"app {self.name}: its first variant is not what it does by itself")
        self.operator(self.name)

    def operator(self, name: str) -> Operator:
        """The app as a dataflow's only operator, its variants as alternates. Costs are relative: 1 is the first's."""
        found = (Alternate(each.name, each.cost, each.selectivity, each.value) for each in self.variants)
        return Operator(name, alternates=tuple(found))

    @property
    def bytes_per_row(self) -> int | None:
        """Of its generated input; None for a user's own."""
        return BYTES_PER_ROW.get(self.generate)


def find_app(name: str, known: dict[str, App]) -> App:
    """An app by its name, or a user's own as `module:function`; the function makes a DataFrame of a DataFrame."""
    if ":" not in name:
        if name not in known:
            raise unknown("app", name, known)
        return known[name]
    module_name, _, function_name = name.partition(":")
    module = load_module(module_name)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise unknown(f"function in {module_name}", function_name, [n for n in vars(module) if not n.startswith("_")])
    if isinstance(function, App):
        return function
    generate = getattr(module, "generate", None) or known["wordcount"].generate
    mode = getattr(module, "OUTPUT_MODE", "update")
    variants = getattr(module, "VARIANTS", ())
    if not isinstance(variants, (tuple, list)) or not all(isinstance(each, Variant) for each in variants):
        raise BadInput(f"app {name}: VARIANTS is not a tuple of penstock.apps.app.Variant(name, transform, …)")
    about = ((function.__doc__ or "").strip() or "your own").splitlines()[0]
    return App(name, about, function, generate, mode, variants=tuple(variants))


def load_module(name: str) -> object:
    """A module on the path, or beside where the command was given. Whatever it raises, it is the module's fault."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return importlib.import_module(name.removesuffix(".py").replace("/", "."))
    except ImportError as error:
        raise BadInput(f"app module '{name}' cannot be imported: {error}") from None
    except SyntaxError as error:
        raise BadInput(f"app module '{name}' is not Python: {error.msg} (line {error.lineno})") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise BadInput(f"app module '{name}' cannot be loaded: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(here)
