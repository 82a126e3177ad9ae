"""CREATE, DROP, TRUNCATE and ALTER."""

from sqlglot import exp

from lakewright.index.layout import PARTITION_RULES
from lakewright.interfaces.sql.names import parts_of, table_name
from lakewright.interfaces.sql.read_parts import partition_spec, properties, query_text
from lakewright.interfaces.sql.rule_texts import check_backslashes
from lakewright.interfaces.sql.statements import (
    AddColumns,
    Alteration,
    AlterTable,
    ChangeType,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropPartitions,
    DropTable,
    SetProperties,
    Statement,
    Truncate,
)
from lakewright.interfaces.sql.text import Piece, parse_sql, refused
from lakewright.model.ddl import read_column
from lakewright.model.errors import Unsupported
from lakewright.model.schema import Field, Struct

_FORMATS = ("hudi", "lakewright")
_LEFT_ALONE = (exp.SchemaCommentProperty,)


def read_create(statement: Piece) -> Statement | None:
    """Read CREATE TABLE or DATABASE; None for what else can be created."""
    tree = statement.parse()
    if not isinstance(tree, exp.Create):
        return None
    kind = str(tree.args.get("kind")).upper()
    if kind in ("DATABASE", "SCHEMA"):
        name = _database(tree.this)
        return CreateDatabase(name, bool(tree.args.get("exists")))
    if kind != "TABLE":
        return None
    check_backslashes(statement, PARTITION_RULES.key)
    if tree.args.get("replace"):
        raise refused(
            "CREATE OR REPLACE TABLE would drop a table without asking.",
            "Write DROP TABLE … and CREATE TABLE …, or INSERT OVERWRITE.",
            statement.text,
        )
    return _create_table(statement, tree)


def _database(tree: exp.Expression) -> str:
    named = tree.this or tree.args["db"]
    return str(named.this)


def _create_table(statement: Piece, tree: exp.Create) -> CreateTable:
    columns: list[Field] = []
    if isinstance(tree.this, exp.Schema):
        columns = [_column(c) for c in tree.this.expressions]
    partition_by, location, given = list[str](), None, list[exp.Expression]()
    listed = tree.args.get("properties")
    for entry in listed.expressions if listed is not None else ():
        if isinstance(entry, exp.FileFormatProperty):
            _check_format(str(entry.this.name if hasattr(entry.this, "name") else entry.this))
        elif isinstance(entry, exp.PartitionedByProperty):
            for column in entry.this.expressions:
                if isinstance(column, exp.ColumnDef):
                    columns.append(_column(column))
                partition_by.append(str(column.name))
        elif isinstance(entry, exp.LocationProperty):
            location = str(entry.this.this)
        elif isinstance(entry, exp.OptionsProperty):
            given.extend(entry.expressions)
        elif type(entry) is exp.Property:
            given.append(entry)
        elif not isinstance(entry, _LEFT_ALONE):
            raise refused(
                f"{entry.sql(dialect='spark')} has no meaning for a Hudi table.",
                "Allowed: USING, PARTITIONED BY, TBLPROPERTIES, LOCATION, COMMENT.",
            )
    query = query_text(statement, _behind_as(statement)) if tree.expression is not None else None
    if query is not None and columns:
        raise refused(
            "CREATE TABLE … AS SELECT takes its columns from the query.",
            "Leave the column list out.",
        )
    return CreateTable(
        name=table_name(tree.this),
        columns=Struct(tuple(columns)) if columns else None,
        partition_by=tuple(partition_by),
        properties=properties(given),
        location=location,
        if_not_exists=bool(tree.args.get("exists")),
        query=query,
    )


def _behind_as(statement: Piece) -> int:
    """Return the token at which the query of CREATE TABLE … AS begins."""
    depth = 0
    for place in range(len(statement.tokens)):
        depth += statement.nesting(place)
        if depth == 0 and statement.word(place) == "AS":
            return place + 1
    return 3


def _column(tree: exp.Expression) -> Field:
    if not isinstance(tree, exp.ColumnDef) or not isinstance(tree.this, exp.Identifier):
        raise refused(
            f"{tree.sql(dialect='spark')} is no column.", "Write columns as: name type [NOT NULL]."
        )
    return read_column(tree)


def _check_format(name: str) -> None:
    if name.lower() not in _FORMATS:
        raise Unsupported(
            f"USING {name}: this lake holds Hudi tables.", next_step="Write USING hudi."
        )


def read_drop(statement: Piece) -> Statement | None:
    """Read DROP TABLE or DATABASE."""
    tree = statement.parse()
    if not isinstance(tree, exp.Drop):
        return None
    kind = str(tree.args.get("kind")).upper()
    named = tree.args.get("tables") or [tree.this]
    if len(named) != 1:
        raise refused("one thing is dropped at a time.", "Write one DROP for each.")
    exists = bool(tree.args.get("exists"))
    if kind in ("DATABASE", "SCHEMA"):
        return DropDatabase(_database(named[0]), exists, bool(tree.args.get("cascade")))
    if kind == "TABLE":
        return DropTable(table_name(named[0]), exists, bool(tree.args.get("purge")))
    return None


def read_truncate(statement: Piece) -> Truncate:
    """Read TRUNCATE TABLE."""
    tree = statement.parse()
    if not isinstance(tree, exp.TruncateTable) or len(tree.expressions) != 1:
        raise refused("TRUNCATE takes one table.", "Write TRUNCATE TABLE database.table.")
    return Truncate(table_name(tree.expressions[0]), partition_spec(tree.args.get("partition")))


def read_alter(statement: Piece) -> AlterTable | None:
    """Read ALTER TABLE; changes that Hudi cannot make without a schema of its own are refused."""
    unset = _read_unset(statement)
    if unset is not None:
        return unset
    tree = statement.parse()
    if not isinstance(tree, exp.Alter) or str(tree.args.get("kind")).upper() != "TABLE":
        return None
    actions = tree.args.get("actions") or []
    name = table_name(tree.this)
    added = [a for a in actions if isinstance(a, exp.ColumnDef | exp.Schema)]
    if added and len(added) == len(actions):
        columns = [c for a in added for c in (a.expressions if isinstance(a, exp.Schema) else [a])]
        return AlterTable(name, AddColumns(tuple(_added(c) for c in columns)))
    if len(actions) != 1:
        raise refused("one change at a time.", "Write one ALTER TABLE for each change.")
    return AlterTable(name, _alteration(actions[0], statement))


def _alteration(action: exp.Expression, statement: Piece) -> Alteration:
    match action:
        case exp.AlterColumn() if action.args.get("dtype") is not None:
            renamed = action.args.get("rename_to")
            if renamed is not None and renamed.name.lower() != action.name.lower():
                raise _not_here("a column cannot be renamed")
            column = exp.ColumnDef(this=action.this, kind=action.args["dtype"])
            return ChangeType(str(action.this.name), read_column(column))
        case exp.AlterSet():
            # SET TBLPROPERTIES (…) comes as a list of lists, the short form SET (…) as a list.
            groups = ([e] if isinstance(e, exp.EQ) else e.expressions for e in action.expressions)
            entries = [entry for group in groups for entry in group]
            if not entries:
                raise refused("SET sets nothing.", "Write SET TBLPROPERTIES ('key' = 'value').")
            check_backslashes(statement, PARTITION_RULES.key)
            return SetProperties(properties(entries))
        case exp.DropPartition():
            specs = [partition_spec(part) or {} for part in action.expressions]
            return DropPartitions(tuple(specs))
        case exp.RenameColumn():
            raise _not_here("a column cannot be renamed")
        case exp.Drop():
            raise _not_here("a column cannot be dropped")
        case exp.AlterRename():
            raise Unsupported(
                "a table cannot be renamed: its name is its folder.",
                next_step="Create a table of the new name with CREATE TABLE … AS SELECT.",
            )
        case _:
            raise refused(
                f"ALTER TABLE does not know this change: {statement.text}.",
                "Allowed: ADD COLUMNS, ALTER COLUMN … TYPE, SET and UNSET TBLPROPERTIES, "
                "SET ('key' = 'value'), DROP PARTITION.",
            )


def _not_here(what: str) -> Unsupported:
    return Unsupported(
        f"{what}: files name their columns, and readers of other software would find none.",
        next_step="Add a new column, or create a new table with CREATE TABLE … AS SELECT.",
    )


def _added(column: exp.Expression) -> Field:
    if column.args.get("position") is not None:
        raise Unsupported(
            "a new column goes to the end of the table.", next_step="Leave FIRST or AFTER out."
        )
    if isinstance(column, exp.ColumnDef) and isinstance(column.this, exp.Dot):
        raise Unsupported(
            f"{column.this.sql(dialect='spark')}: a member of a struct is added with the rows that "
            "have it.",
            next_step="Write rows whose struct has the new member; it must be nullable.",
        )
    field = _column(column)
    if not field.nullable:
        raise refused(
            f"column {field.name} is new, so that rows there are have no value for it.",
            "Leave NOT NULL out.",
        )
    return field


def _read_unset(statement: Piece) -> AlterTable | None:
    """Read UNSET TBLPROPERTIES, which the parser does not know."""
    words = statement.words(len(statement.tokens))
    if "UNSET" not in words:
        return None
    at = words.index("UNSET")
    if words[at + 1 : at + 2] != ("TBLPROPERTIES",):
        raise refused("UNSET what?", "Write UNSET TBLPROPERTIES ('key').", statement.text)
    name_text = statement.text[statement.tokens[2].start : statement.tokens[at].start]
    exists = words[at + 2 : at + 4] == ("IF", "EXISTS")
    listed = parse_sql(statement.since(at + (4 if exists else 2)), exp.Condition)
    keys = listed.expressions if isinstance(listed, exp.Tuple) else [listed]
    changes: dict[str, str | None] = {}
    for key in keys:
        bare = key.this if isinstance(key, exp.Paren) else key
        changes[str(bare.this if isinstance(bare, exp.Literal) else bare.sql())] = None
    return AlterTable(table_name(parse_table(name_text)), SetProperties(changes, exists))


def parse_table(text: str) -> exp.Expression:
    """Parse the name of a table."""
    tree = parse_sql(text, exp.Table)
    parts_of(tree)
    return tree
