"""Projects points from one coordinate system to another (extra [geo])."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.errors import MissingExtra, SettingError

if TYPE_CHECKING:
    import numpy.typing as npt


class Projection:
    """Transforms points; x is always east or longitude, y north or latitude."""

    def __init__(
        self, from_crs: str, to_crs: str, *, names: tuple[str, str] = ("`from_crs`", "`to_crs`")
    ) -> None:
        pyproj = _load_pyproj()
        for name, text in zip(names, (from_crs, to_crs), strict=True):
            try:
                pyproj.CRS.from_user_input(text)
            except pyproj.exceptions.CRSError:
                raise SettingError(
                    f"{name} {text[:60]!r} is not a coordinate system; write for example EPSG:4326"
                ) from None
        try:
            self._transformer = pyproj.Transformer.from_crs(from_crs, to_crs, always_xy=True)
        except pyproj.exceptions.ProjError as error:
            raise SettingError(f"{from_crs} cannot become {to_crs}: {error}") from None

    def __call__(
        self, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the projected points, infinite where projection is impossible."""
        there = self._transformer.transform(x, y)
        return np.asarray(there[0], np.float64), np.asarray(there[1], np.float64)


def _load_pyproj() -> Any:
    try:
        import pyproj  # noqa: PLC0415 - optional
        import pyproj.exceptions  # noqa: PLC0415
    except ImportError:
        raise MissingExtra('pyproj is not installed: pip install "retrasyn[geo]"') from None
    return pyproj
