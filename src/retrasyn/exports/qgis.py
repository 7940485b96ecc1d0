"""A GeoPackage that QGIS plays: points with their times, and a style that says so.

QGIS takes the style from the table ``layer_styles`` of the file, as it writes it there itself. Its
element ``temporal`` (read by ``QgsVectorLayerTemporalProperties::readXml``) names the column of
times and says how long a point stays.
"""

from __future__ import annotations

import contextlib
import sqlite3
import warnings
from typing import TYPE_CHECKING

from retrasyn.data.geoparquet import load_extra
from retrasyn.data.metadata import clock_of
from retrasyn.exports.systems import named
from retrasyn.files import replacing

if TYPE_CHECKING:
    from pathlib import Path

    from retrasyn.data.trajectories import Trajectories

LAYER, GEOMETRY = "points", "geom"
_STYLES = """CREATE TABLE layer_styles (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, f_table_catalog TEXT(256),
    f_table_schema TEXT(256), f_table_name TEXT(256), f_geometry_column TEXT(256),
    styleName TEXT(30), styleQML TEXT, styleSLD TEXT, useAsDefault BOOLEAN, description TEXT,
    owner TEXT(30), ui TEXT(30),
    update_time DATETIME DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')))"""
_LISTED = """INSERT INTO gpkg_contents (table_name, data_type, identifier, srs_id)
    VALUES ('layer_styles', 'attributes', 'layer_styles', 0)"""
_STYLE = """INSERT INTO layer_styles (f_table_catalog, f_table_schema, f_table_name,
    f_geometry_column, styleName, styleQML, styleSLD, useAsDefault, description, owner)
    VALUES ('', '', ?, ?, 'points in time', ?, '', 1, '', '')"""
_QML = """<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>
<qgis version="3.34.0" styleCategories="Symbology|Temporal">
 <temporal enabled="1" mode="1" limitMode="0" startField="time" endField="" startExpression=""
   endExpression="" durationField="" durationUnit="s" fixedDuration="{period}" accumulate="0">
  <fixedRange><start></start><end></end></fixedRange>
 </temporal>
 <renderer-v2 type="singleSymbol" symbollevels="0" forceraster="0" enableorderby="0">
  <symbols>
   <symbol type="marker" name="0" alpha="0.6" clip_to_extent="1" force_rhr="0">
    <layer class="SimpleMarker" enabled="1" pass="0" locked="0">
     <Option type="Map">
      <Option name="name" type="QString" value="circle"/>
      <Option name="color" type="QString" value="0,121,140,255"/>
      <Option name="outline_style" type="QString" value="no"/>
      <Option name="size" type="QString" value="1.6"/>
      <Option name="size_unit" type="QString" value="MM"/>
     </Option>
    </layer>
   </symbol>
  </symbols>
 </renderer-v2>
</qgis>
"""


def write_layer(data: Trajectories, path: Path) -> None:
    """Write the points, their times and the style of the layer."""
    clock = clock_of(data.clock, f"{path}: a layer with times")
    pyogrio = load_extra("pyogrio", "for a GeoPackage")
    points = named(data).to_geodataframe()
    with replacing(path) as temporary:
        temporary.unlink()  # GDAL writes new files only
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where the system is not known, it says so
            pyogrio.write_dataframe(
                points, temporary, layer=LAYER, driver="GPKG", geometry_name=GEOMETRY
            )
        with contextlib.closing(sqlite3.connect(temporary)) as package, package:
            package.execute(_STYLES)
            package.execute(_LISTED)
            package.execute(_STYLE, (LAYER, GEOMETRY, _QML.format(period=f"{clock.period:.15g}")))
