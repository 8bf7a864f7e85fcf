"""Writes the columnar files of the tests beside this script, and the text of the same tables.

    python3 -m venv venv && venv/bin/pip install polars pandas pyarrow duckdb
    venv/bin/python make.py

Made once: the files depend on the versions of these libraries. The texts are written by hand here, so
that the tests compare readers with each other and not with a writer.
"""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

HERE = Path(__file__).parent

CSV = """\
sold,age,views,colour,shop,day,tags,member
1,20.5,3,red,Rialto,2020-02-29,a|b,true
0,,120,,Lido,1969-12-31,,false
1,0.1,0,"grün, hell",Rialto,2024-01-01,c,true
0,-7.25,9007199254740993,red,,1970-01-01,a,
1,1e-05,,blau,Lido,,b|c|b,false
0,33.0,2,red,Rialto,2021-06-01,,true
"""
COLUMNS = {
    "sold": [1, 0, 1, 0, 1, 0],
    "age": [20.5, None, 0.1, -7.25, 1e-05, 33.0],
    "views": [3, 120, 0, 9007199254740993, None, 2],
    "colour": ["red", None, "grün, hell", "red", "blau", "red"],
    "shop": ["Rialto", "Lido", "Rialto", None, "Lido", "Rialto"],
    "day": ["2020-02-29", "1969-12-31", "2024-01-01", "1970-01-01", None, "2021-06-01"],
    "tags": [["a", "b"], [], ["c"], ["a"], ["b", "c", "b"], None],
    "member": [True, False, True, None, False, True],
}
LIBSVM = """\
1 0:0.5 3:2
-1
1 1:-1.25 2:0 4:0.1
-1 5:3
1 0:1 5:1e-05
"""
ROWS = [
    (1, [0, 3], [0.5, 2.0]),
    (-1, [], []),
    (1, [1, 2, 4], [-1.25, 0.0, 0.1]),
    (-1, [5], [3.0]),
    (1, [0, 5], [1.0, 1e-05]),
]


def tables():
    (HERE / "table.csv").write_text(CSV)
    day = pa.array(COLUMNS["day"]).cast(pa.date32())
    arrow = pa.table({**COLUMNS, "day": day})
    arrow = arrow.set_column(4, "shop", arrow["shop"].dictionary_encode())
    pq.write_table(arrow, HERE / "table_pyarrow.parquet", row_group_size=2)
    pq.write_table(arrow, HERE / "table_gzip.parquet", compression="gzip", version="1.0")
    pq.write_table(arrow, HERE / "table_zstd.parquet", compression="zstd")
    pq.write_table(arrow, HERE / "table_brotli.parquet", compression="brotli")
    feather.write_feather(arrow, HERE / "table_pyarrow.feather", chunksize=4)

    frame = pd.DataFrame({name: pd.Series(values) for name, values in COLUMNS.items()})
    frame["views"] = pd.array(COLUMNS["views"], dtype="Int64")
    frame["member"] = pd.array(COLUMNS["member"], dtype="boolean")
    frame["day"] = pd.Series([None if d is None else pd.Timestamp(d).date() for d in COLUMNS["day"]])
    frame["shop"] = frame["shop"].astype("category")
    frame.to_parquet(HERE / "table_pandas.parquet", index=False)

    polars = pl.DataFrame(COLUMNS).with_columns(
        pl.col("day").str.to_date(), pl.col("shop").cast(pl.Categorical)
    )
    polars.write_parquet(HERE / "table_polars.parquet", row_group_size=3, compression="lz4")
    polars.write_parquet(HERE / "table_polars_zstd.parquet")
    polars.write_ipc(HERE / "table_polars.arrow")

    database = duckdb.connect()
    database.register("made", arrow)
    database.execute(
        f"COPY (SELECT sold, age, views, colour, shop::VARCHAR AS shop, day, tags, member FROM made) "
        f"TO '{HERE / 'table_duckdb.parquet'}' (FORMAT parquet)"
    )
    database.execute(
        f"COPY (SELECT 1.50::DECIMAL(4, 2) AS price, 1 AS y UNION ALL SELECT -0.05, 0 ORDER BY y) "
        f"TO '{HERE / 'decimal_duckdb.parquet'}' (FORMAT parquet)"
    )


def sparse():
    (HERE / "rows.svm").write_text(LIBSVM)
    labels = pa.array([float(label) for label, _, _ in ROWS], pa.float32())
    indices = pa.array([indices for _, indices, _ in ROWS], pa.list_(pa.uint32()))
    values = pa.array([values for _, _, values in ROWS], pa.list_(pa.float32()))
    lists = pa.table({"label": labels, "indices": indices, "values": values})
    pq.write_table(lists, HERE / "rows_pyarrow.parquet", row_group_size=2)
    feather.write_feather(lists, HERE / "rows_pyarrow.feather", compression="uncompressed", chunksize=2)
    frame = pl.DataFrame(
        {
            "label": [label for label, _, _ in ROWS],
            "indices": [indices for _, indices, _ in ROWS],
            "values": [values for _, _, values in ROWS],
        },
        schema={"label": pl.Int8, "indices": pl.List(pl.UInt32), "values": pl.List(pl.Float32)},
    )
    frame.write_parquet(HERE / "rows_polars.parquet", compression="snappy")
    database = duckdb.connect()
    database.register("made", lists)
    database.execute(f"COPY (SELECT * FROM made) TO '{HERE / 'rows_duckdb.parquet'}' (FORMAT parquet)")
    # As Spark's `VectorUDT.sqlType` has it: type 0 is sparse, 1 dense without size and indices.
    vector = pa.struct(
        [
            pa.field("type", pa.int8(), nullable=False),
            pa.field("size", pa.int32()),
            pa.field("indices", pa.list_(pa.field("element", pa.int32(), nullable=False))),
            pa.field("values", pa.list_(pa.field("element", pa.float64(), nullable=False))),
        ]
    )
    made = [
        {"type": 0, "size": 6, "indices": indices, "values": values} for _, indices, values in ROWS
    ]
    made[3] = {"type": 1, "size": None, "indices": None, "values": [0.0, 0.0, 0.0, 0.0, 0.0, 3.0]}
    spark = pa.table(
        {
            "label": pa.array([float(label) for label, _, _ in ROWS], pa.float64()),
            "features": pa.array(made, vector),
        }
    )
    pq.write_table(spark, HERE / "rows_spark.parquet", use_dictionary=True, row_group_size=3, store_schema=False)


tables()
sparse()
