"""Settings that may change the rows of some functions alone: they count for a query that calls one,
or a cache that does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cachemgr.config.judged.kinds import Judgement, Kind

# By Spark's names in lower case, and its classes' where the optimiser has put one in place.
_JSON: Final = frozenset({
    "from_json", "to_json", "schema_of_json", "get_json_object", "json_tuple", "json_array_length",
    "json_object_keys", "parse_json", "try_parse_json", "jsontostructs", "structstojson",
    "getjsonobject", "multigetjsonobject", "lengthofjsonarray", "jsonobjectkeys", "schemaofjson",
})  # fmt: skip
_CSV: Final = frozenset({
    "from_csv", "to_csv", "schema_of_csv", "csvtostructs", "structstocsv", "schemaofcsv",
})  # fmt: skip
_XML: Final = frozenset({
    "from_xml", "to_xml", "schema_of_xml", "xmltostructs", "structstoxml", "schemaofxml",
})  # fmt: skip
_AVRO: Final = frozenset({
    "from_avro", "to_avro", "schema_of_avro", "avrodatatocatalyst", "catalystdatatoavro",
})  # fmt: skip
_PROTOBUF: Final = frozenset({
    "from_protobuf", "to_protobuf", "protobufdatatocatalyst", "catalystdatatoprotobuf",
})  # fmt: skip
_MAPS: Final = _JSON | {
    "map", "createmap", "map_from_arrays", "mapfromarrays", "map_from_entries", "mapfromentries",
    "map_concat", "mapconcat", "str_to_map", "stringtomap", "transform_keys", "transformkeys",
    "map_zip_with", "mapzipwith",
}  # fmt: skip
# Where the name of the time zone can be part of the text: patterns with V, v or z, and options.
SHOW_ZONE: Final = _JSON | _CSV | _XML | {
    "date_format", "dateformatclass", "from_unixtime", "fromunixtime", "to_char", "to_varchar",
    "current_timezone", "currenttimezone",
}  # fmt: skip

_ROWS: Final[tuple[tuple[str, frozenset[str], str], ...]] = (
    ("avro.datetimeRebaseModeInRead", _AVRO, "days and times in the old calendar"),
    ("avro.datetimeRebaseModeInWrite", _AVRO, "days and times in the old calendar"),
    # by the method that Spark calls for it, too
    ("chunkBase64String.enabled", frozenset({"base64", "encode"}), "line ends in BASE64"),
    ("columnNameOfCorruptRecord", _JSON | _CSV | _XML, "which field has what cannot be read"),
    ("csv.parser.*", _CSV, "what of a CSV text is read"),
    (
        "files.supportSecondOffsetFormat",
        _JSON | _CSV | _XML,
        "times with seconds in their zone offset",
    ),
    ("function.concatBinaryAsString", frozenset({"concat"}), "type of CONCAT of BINARY"),
    ("function.eltOutputAsString", frozenset({"elt"}), "type of ELT of BINARY"),
    ("function.protobufExtensions.enabled", _PROTOBUF, "fields of Protobuf messages"),
    ("json.*", _JSON, "what of a JSON text is read"),
    ("jsonGenerator.ignoreNullFields", _JSON, "NULL fields in JSON texts"),
    (
        "legacy.allowNullComparisonResultInArraySort",
        frozenset({"array_sort", "arraysort"}),
        "what ARRAY_SORT makes of NULL",
    ),
    (
        "legacy.allowZeroIndexInFormatString",
        frozenset({"format_string", "printf", "formatstring"}),
        "whether an index of 0 is an error",
    ),
    ("legacy.csv.*", _CSV, "what of a CSV text is read"),
    ("legacy.disableMapKeyNormalization", _MAPS, "keys of a map"),
    (
        "legacy.histogramNumericPropagateInputType",
        frozenset({"histogram_numeric", "histogramnumeric"}),
        "type of HISTOGRAM_NUMERIC",
    ),
    ("legacy.json.*", _JSON, "what of a JSON text is read"),
    (
        "legacy.lpadRpadAlwaysReturnString",
        frozenset({"lpad", "rpad", "stringlpad", "stringrpad", "binarypad"}),
        "type of LPAD and RPAD of BINARY",
    ),
    (
        "legacy.negativeIndexInArrayInsert",
        frozenset({"array_insert", "arrayinsert"}),
        "where ARRAY_INSERT puts a value",
    ),
    (
        "legacy.percentileDiscCalculation",
        frozenset({"percentile_disc", "percentiledisc"}),
        "values of PERCENTILE_DISC",
    ),
    (
        "legacy.sizeOfNull",
        frozenset({"size", "cardinality"}),
        "SIZE of NULL",
    ),
    (
        "legacy.truncateForEmptyRegexSplit",
        frozenset({"split", "stringsplit"}),
        "what SPLIT by an empty pattern keeps",
    ),
    ("legacy.useLegacyXMLParser", _XML, "what of an XML text is read"),
    (
        "listagg.*",
        frozenset({"listagg", "string_agg"}),
        "whether LISTAGG of DISTINCT values is refused",
    ),
    ("mapKeyDedupPolicy", _MAPS, "what becomes of a key that a map has twice"),
    (
        "mapZipWithUsesJavaCollections",
        frozenset({"map_zip_with", "mapzipwith"}),
        "which keys MAP_ZIP_WITH takes for equal",
    ),
    ("optimizer.enableCsvExpressionOptimization", _CSV, "which fields of a CSV text are read"),
    ("optimizer.enableJsonExpressionOptimization", _JSON, "which fields of a JSON text are read"),
    ("xml.*", _XML, "what of an XML text is read"),
)


def of_functions() -> Iterator[Judgement]:
    """The judgements."""
    for name, functions, reason in _ROWS:
        yield Judgement(f"spark.sql.{name}", Kind.RESULTS, reason, functions)
