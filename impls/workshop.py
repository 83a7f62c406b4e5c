"""Importing the files of an implementation so that two hand-ins with files of the same name never meet."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from impls.locate import Located

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
        self._prefix = f"lockstep_{next(_serial)}"  # our own name for it: a stem such as `queue` may be taken

    def import_all(self) -> list[ModuleType]:
        """Import the candidates in order."""
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
        sys.modules.update(self._modules)
        importlib.invalidate_caches()

    def _put_away(self) -> None:
        self._modules = {name: module for name, module in sys.modules.items() if self._is_ours(name, module)}
        for name in self._modules:
            del sys.modules[name]
        for path in self._paths:
            if path in sys.path:
                sys.path.remove(path)

    @property
    def _paths(self) -> list[str]:
        return list(dict.fromkeys([str(self._folder), str(self._root)]))

    def _is_ours(self, name: str, module: ModuleType) -> bool:
        if name.partition(".")[0] == self._prefix:
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
        module = importlib.import_module(f"{self._prefix}.{path.stem}")
        sys.modules.setdefault(path.stem, module)  # `import ddp` in a sibling means this one
        return module

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
            except BaseException:
                del sys.modules[self._prefix]
                raise
        else:
            package = ModuleType(self._prefix)
            package.__path__ = [str(self._folder)]
            sys.modules[self._prefix] = package


def _above_packages(folder: Path) -> Path:
    """The folder that has to be on the path for ``import package.of.this.folder``; itself when it is no package."""
    while (folder / "__init__.py").exists() and folder != folder.parent:
        folder = folder.parent
    return folder
