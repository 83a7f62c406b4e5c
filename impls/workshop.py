"""Importing the files of an implementation so that two hand-ins with files of the same name never meet."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from impls.locate import Located
from impls.stubs import StubFinder, StubModule, replaced

_serial = itertools.count()


class Workshop:
    """The folder of one implementation on ``sys.path`` and its modules in ``sys.modules``, while it is active."""

    _active: ClassVar[Workshop | None] = None

    def __init__(self, located: Located) -> None:
        self._located = located
        self._folder = located.path if located.path.is_dir() else located.path.parent
        self._root = _above_packages(self._folder)
        below = self._folder.relative_to(self._root).parts
        self._top = self._root / below[0] if below else self._folder  # what lies below it is this implementation's
        self._modules: dict[str, ModuleType] = {}
        self.skipped: list[str] = []  # what failed beside the files that were asked for, and was left out
        self._finder = StubFinder(located.stubs)  # for what is imported when a function is called
        self._prefix = f"lockstep_{next(_serial)}"  # our own name for it: a stem such as `queue` may be taken

    def import_all(self) -> list[ModuleType]:
        """Import the candidates in order, with stand-ins for what the table of adapters replaces."""
        with replaced(self._located.stubs):
            return self._import_all()

    def _import_all(self) -> list[ModuleType]:
        located = self._located
        if located.module and located.path.is_file():
            return [importlib.import_module(located.module)]
        if located.module:
            return [importlib.import_module(self._dotted(path)) for path in located.candidates]
        return [self._import_file(path) for path in located.candidates]

    def activate(self) -> None:
        """Swap the modules of the implementation that was active for those of this one."""
        active = Workshop._active
        if active is self or self._located.module:
            return
        if active is not None:
            active._put_away()
        Workshop._active = self
        # Behind the standard library, which a hand-in's `queue.py` must not replace; before installed packages.
        position = next((i for i, entry in enumerate(sys.path) if "site-packages" in entry), len(sys.path))
        sys.path[position:position] = self._paths
        sys.meta_path.append(self._finder)  # the last to be asked
        sys.modules.update(self._modules)
        importlib.invalidate_caches()

    def _put_away(self) -> None:
        self._modules = {name: module for name, module in sys.modules.items() if self._is_ours(name, module)}
        for name in self._modules:
            del sys.modules[name]
        for path in self._paths:
            if path in sys.path:
                sys.path.remove(path)
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)

    @property
    def _paths(self) -> list[str]:
        return list(dict.fromkeys([str(self._folder), str(self._root)]))

    def _is_ours(self, name: str, module: ModuleType) -> bool:
        if name.partition(".")[0] == self._prefix or isinstance(module, StubModule):
            return True
        file = getattr(module, "__file__", None)
        in_folder = isinstance(file, str) and Path(file).is_relative_to(self._top)
        return in_folder and "site-packages" not in str(file) and name.partition(".")[0] not in {"impls", "__main__"}

    def _dotted(self, path: Path) -> str:
        return self._located.module if path.stem == "__init__" else f"{self._located.module}.{path.stem}"

    def _import_file(self, path: Path) -> ModuleType:
        """One file under a name of ours; with its folder as package, so that ``from .other import x`` works too."""
        if self._prefix not in sys.modules:
            self._make_package()
        if path.stem == "__init__":
            return sys.modules[self._prefix]
        module = self._past_its_packages(f"{self._prefix}.{path.stem}")
        sys.modules.setdefault(path.stem, module)  # `import ddp` in a sibling means this one
        return module

    def _past_its_packages(self, name: str) -> ModuleType:
        """Import a module of ours; an ``__init__.py`` above it that fails, as outside of its project, is left out."""
        while True:
            try:
                return importlib.import_module(name)
            except Exception as error:
                init = next(self._inits_in(error), None)
                if init is None:
                    raise
                self._leave_out(init, ".".join(init.parent.relative_to(self._root).parts), error)

    def _inits_in(self, error: Exception) -> Iterator[Path]:
        """The files of packages around this implementation in which an import failed, and not in a file they import."""
        files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
        ours = [file for file in files if file.is_relative_to(self._top)]
        if ours and ours[-1].name == "__init__.py" and ours[-1].parent != self._root:
            yield ours[-1]

    def _leave_out(self, init: Path, name: str, error: Exception) -> None:
        package = ModuleType(name)
        package.__path__ = [str(init.parent)]
        sys.modules[name] = package
        told = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        said = f"{init.parent.name}/{init.name} was left out, as it failed here ({told})"
        self.skipped += [said] if said not in self.skipped else []

    def _make_package(self) -> None:
        init = self._folder / "__init__.py"
        if self._located.path.is_dir() and init.exists():
            spec = importlib.util.spec_from_file_location(
                self._prefix, init, submodule_search_locations=[str(self._folder)]
            )
            assert spec is not None
            assert spec.loader is not None
            package = importlib.util.module_from_spec(spec)
            sys.modules[self._prefix] = package
            try:
                spec.loader.exec_module(package)
            except BaseException as error:
                del sys.modules[self._prefix]
                alone = len(self._located.candidates) == 1
                if alone or not isinstance(error, Exception) or init not in self._inits_in(error):
                    raise
                self._leave_out(init, self._prefix, error)
        else:
            package = ModuleType(self._prefix)
            package.__path__ = [str(self._folder)]
            sys.modules[self._prefix] = package


def _above_packages(folder: Path) -> Path:
    """The folder that has to be on the path for ``import package.of.this.folder``; itself when it is no package."""
    while (folder / "__init__.py").exists() and folder != folder.parent:
        folder = folder.parent
    return folder
