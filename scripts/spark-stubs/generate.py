# /// script
# requires-python = ">=3.10"
# dependencies = ["protobuf>=6.31"]
# ///
"""
Makes src/engines/spark/connect/generated/spark_connect_pb.ts:

    uv run scripts/spark-stubs/generate.py [FOLDER WITH pyspark IN IT]

The folder is a site-packages; left out, it is the one that manyworlds keeps in its cache. Nothing of pyspark but its descriptors
is loaded, so neither Java nor gRPC is needed.

pyspark ships no .proto files, only what protoc made of them. From there we take the part of the protocol that we speak
(`KEPT`), as one file, and give it to protoc-gen-es. What we leave out is skipped on the wire as any unknown field is. Enums
become int32, which is the same on the wire: TypeScript's enums are not types alone, and this package has none.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import subprocess
import sys
import types
from pathlib import Path

from google.protobuf import descriptor_pb2
from google.protobuf.compiler import plugin_pb2

PACKAGE = "spark.connect"
ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "node_modules/.bin/protoc-gen-es"
OUT = ROOT / "src/engines/spark/connect/generated"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "manyworlds/python"

WHO = "session_id user_context client_type client_observed_server_side_session_id"

METHODS = """ExecutePlan AnalyzePlan Config AddArtifacts Interrupt ReattachExecute ReleaseExecute ReleaseSession
    FetchErrorDetails""".split()

# Messages and those of their fields that we write or read.
KEPT = {
    "UserContext": "user_id",
    "Plan": "root command",
    "ExecutePlanRequest": f"{WHO} operation_id plan request_options tags",
    "ExecutePlanRequest.RequestOption": "reattach_options",
    "ReattachOptions": "reattachable",
    "ExecutePlanResponse": """server_side_session_id operation_id response_id arrow_batch sql_command_result
        result_complete execution_progress""",
    "ExecutePlanResponse.ArrowBatch": "row_count data start_offset",
    "ExecutePlanResponse.SqlCommandResult": "relation",
    "ExecutePlanResponse.ResultComplete": "",
    "ExecutePlanResponse.ExecutionProgress": "stages num_inflight_tasks",
    "ExecutePlanResponse.ExecutionProgress.StageInfo": "stage_id num_tasks num_completed_tasks done",
    "AnalyzePlanRequest": f"{WHO} spark_version schema explain",
    "AnalyzePlanRequest.SparkVersion": "",
    "AnalyzePlanRequest.Schema": "plan",
    "AnalyzePlanRequest.Explain": "plan explain_mode",
    "AnalyzePlanResponse": "server_side_session_id spark_version schema explain",
    "AnalyzePlanResponse.SparkVersion": "version",
    "AnalyzePlanResponse.Schema": "schema",
    "AnalyzePlanResponse.Explain": "explain_string",
    "DataType": """null binary boolean byte short integer long float double decimal string date timestamp timestamp_ntz
        array struct map""",
    **{
        f"DataType.{name}": ""
        for name in """NULL Binary Boolean Byte Short Integer Long Float Double String Date Timestamp
        TimestampNTZ""".split()
    },
    "DataType.Decimal": "precision scale",
    "DataType.Array": "element_type",
    "DataType.Map": "key_type value_type",
    "DataType.Struct": "fields",
    "DataType.StructField": "name data_type nullable",
    "ConfigRequest": f"{WHO} operation",
    "ConfigRequest.Operation": "set get_option",
    "ConfigRequest.Set": "pairs",
    "ConfigRequest.GetOption": "keys",
    "ConfigResponse": "server_side_session_id pairs",
    "KeyValue": "key value",
    "AddArtifactsRequest": f"{WHO} batch begin_chunk chunk",
    "AddArtifactsRequest.Batch": "artifacts",
    "AddArtifactsRequest.SingleChunkArtifact": "name data",
    "AddArtifactsRequest.BeginChunkedArtifact": "name total_bytes num_chunks initial_chunk",
    "AddArtifactsRequest.ArtifactChunk": "data crc",
    "AddArtifactsResponse": "server_side_session_id artifacts",
    "AddArtifactsResponse.ArtifactSummary": "name is_crc_successful",
    "InterruptRequest": f"{WHO} interrupt_type operation_tag operation_id",
    "InterruptResponse": "server_side_session_id interrupted_ids",
    "ReattachExecuteRequest": f"{WHO} operation_id last_response_id",
    "ReleaseExecuteRequest": f"{WHO} operation_id release_all release_until",
    "ReleaseExecuteRequest.ReleaseAll": "",
    "ReleaseExecuteRequest.ReleaseUntil": "response_id",
    "ReleaseExecuteResponse": "server_side_session_id operation_id",
    "ReleaseSessionRequest": "session_id user_context client_type",
    "ReleaseSessionResponse": "server_side_session_id",
    "FetchErrorDetailsRequest": f"{WHO} error_id",
    "FetchErrorDetailsResponse": "server_side_session_id root_error_idx errors",
    "FetchErrorDetailsResponse.Error": "error_type_hierarchy message cause_idx spark_throwable",
    "FetchErrorDetailsResponse.SparkThrowable": "error_class sql_state",
    "Relation": "common read limit sql local_relation subquery_alias with_relations",
    "RelationCommon": "plan_id",
    "Read": "named_table data_source",
    "Read.NamedTable": "unparsed_identifier options",
    "Read.DataSource": "format schema options paths",
    "Limit": "input limit",
    "SQL": "query named_arguments",
    "LocalRelation": "data schema",
    "SubqueryAlias": "input alias",
    "WithRelations": "root references",
    "Expression": "literal",
    "Expression.Literal": "null boolean integer long double string",
    "Command": "write_operation sql_command",
    "SqlCommand": "input",
    "WriteOperation": "input source path table mode partitioning_columns options",
    "WriteOperation.SaveTable": "table_name save_method",
}


def main() -> None:
    site = Path(sys.argv[1]) if len(sys.argv) > 1 else max(CACHE.glob("spark-*/lib/python*/site-packages"))
    version = next(importlib.metadata.distributions(name="pyspark", path=[str(site)])).version
    file = one_file(descriptors(site))
    request = plugin_pb2.CodeGeneratorRequest(file_to_generate=[file.name], parameter="target=ts", proto_file=[file])
    made = subprocess.run([str(PLUGIN)], input=request.SerializeToString(), stdout=subprocess.PIPE, check=True)
    response = plugin_pb2.CodeGeneratorResponse.FromString(made.stdout)
    if response.error:
        raise SystemExit(response.error)
    OUT.mkdir(parents=True, exist_ok=True)
    for one in response.file:
        head = f"// Made from pyspark {version} by scripts/spark-stubs/generate.py, which says how. Not to be edited.\n"
        (OUT / Path(one.name).name).write_text(head + one.content)


def descriptors(site: Path) -> list[descriptor_pb2.FileDescriptorProto]:
    # Empty packages in the place of pyspark's own, whose __init__ files want all of Spark.
    for name in ("pyspark", "pyspark.sql", "pyspark.sql.connect", "pyspark.sql.connect.proto"):
        package = types.ModuleType(name)
        package.__path__ = [str(site / name.replace(".", "/"))]
        sys.modules[name] = package
    found = []
    for name in ("types", "expressions", "relations", "commands", "base"):
        proto = descriptor_pb2.FileDescriptorProto()
        importlib.import_module(f"pyspark.sql.connect.proto.{name}_pb2").DESCRIPTOR.CopyToProto(proto)
        found.append(proto)
    return found


def one_file(sources: list[descriptor_pb2.FileDescriptorProto]) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="spark_connect.proto", package=PACKAGE, syntax="proto3")
    seen: set[str] = set()
    for source in sources:
        file.message_type.extend(kept(source.message_type, "", seen))
        for service in source.service:
            slim = file.service.add(name=service.name)
            slim.method.extend(method for method in service.method if method.name in METHODS)
    file.message_type.append(error_info())
    if missing := set(KEPT) - seen:
        raise SystemExit(f"this pyspark has no {', '.join(sorted(missing))}")
    return file


def kept(messages, prefix: str, seen: set[str]) -> list[descriptor_pb2.DescriptorProto]:
    found = []
    for message in messages:
        name = prefix + message.name
        if message.options.map_entry:
            found.append(message)
        elif name in KEPT:
            seen.add(name)
            found.append(slimmed(message, name, seen))
    return found


def slimmed(message, name: str, seen: set[str]) -> descriptor_pb2.DescriptorProto:
    wanted = KEPT[name].split()
    slim = descriptor_pb2.DescriptorProto(name=message.name)
    oneofs: dict[int, int] = {}
    for field in message.field:
        if field.name not in wanted:
            continue
        wanted.remove(field.name)
        copy = slim.field.add()
        copy.CopyFrom(field)
        if copy.type == copy.TYPE_ENUM:
            copy.type = copy.TYPE_INT32
            copy.ClearField("type_name")
        if field.HasField("oneof_index"):
            copy.oneof_index = oneofs.setdefault(field.oneof_index, len(oneofs))
    # Optional fields have a oneof each, and protobuf wants those after the real ones. Both are in the order of the original.
    order = sorted(oneofs)
    for field in slim.field:
        if field.HasField("oneof_index"):
            original = next(old for old, new in oneofs.items() if new == field.oneof_index)
            field.oneof_index = order.index(original)
    slim.oneof_decl.extend(message.oneof_decl[index] for index in order)
    entries = {field.type_name.rsplit(".", 1)[-1] for field in slim.field}
    nested = kept(message.nested_type, f"{name}.", seen)
    slim.nested_type.extend(one for one in nested if not one.options.map_entry or one.name in entries)
    if wanted:
        raise SystemExit(f"{name} has no {', '.join(wanted)} in this pyspark")
    return slim


def error_info() -> descriptor_pb2.DescriptorProto:
    """google.rpc.ErrorInfo, which is in another package. Nobody sees its name on the wire but we, and we compare it ourselves."""
    message = descriptor_pb2.DescriptorProto(name="ErrorInfo")
    of = descriptor_pb2.FieldDescriptorProto
    text = {"type": of.TYPE_STRING, "label": of.LABEL_OPTIONAL}
    message.field.add(name="reason", number=1, **text)
    message.field.add(name="domain", number=2, **text)
    entry = f".{PACKAGE}.ErrorInfo.MetadataEntry"
    message.field.add(name="metadata", number=3, type=of.TYPE_MESSAGE, label=of.LABEL_REPEATED, type_name=entry)
    pair = message.nested_type.add(name="MetadataEntry")
    pair.options.map_entry = True
    pair.field.add(name="key", number=1, **text)
    pair.field.add(name="value", number=2, **text)
    return message


if __name__ == "__main__":
    main()
