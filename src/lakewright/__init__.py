"""Lakewright: the Python home of lake tables.

    import lakewright as lw

    table = lw.open_table("/data/orders")
    table.scan(where=lw.col("dt") >= "2026-11-01", columns=["order_id"]).to_arrow()

Names are loaded when they are first used: every Spark worker imports this package, and it must
cost nothing there.
"""

import importlib
import logging
from typing import TYPE_CHECKING

from lakewright.model.version import VERSION

if TYPE_CHECKING:
    from lakewright.actions.buckets.rescale import RescaleResult
    from lakewright.actions.buckets.rescale_plan import RescalePlan
    from lakewright.actions.services.plan import ServicePlan
    from lakewright.actions.services.upgrade_plan import UpgradePlan, UpgradeResult
    from lakewright.api.creating import create_table
    from lakewright.api.lake import Lake
    from lakewright.api.opening import open_table
    from lakewright.api.runner import ServicesRunner
    from lakewright.api.scan import Scan
    from lakewright.api.table import Table
    from lakewright.interfaces.entry import connect
    from lakewright.model.bucket_rules.compiled import register_rule
    from lakewright.model.bucket_rules.rules import BucketRule, BucketRules
    from lakewright.model.errors import (
        AlreadyExists,
        CommitStateUnknown,
        Conflict,
        Corrupt,
        Denied,
        HistoryGone,
        InstantNotFound,
        Invalid,
        InvalidExpression,
        InvalidOption,
        InvalidPath,
        LakewrightError,
        MissingExtra,
        NotFound,
        SnapshotGone,
        TableNotFound,
        Unavailable,
        UnknownColumn,
        Unsupported,
    )
    from lakewright.model.expression.build import col, lit
    from lakewright.model.services import ServiceResult, ServiceRun
    from lakewright.model.writing import Operation, PartitionWritten, WriteResult
    from lakewright.table.merge.merger import Merged, RecordMerger, register_merger

__version__ = VERSION

logging.getLogger(__name__).addHandler(logging.NullHandler())

_HOME = {
    "Lake": "api.lake",
    "connect": "interfaces.entry",
    "create_table": "api.creating",
    "open_table": "api.opening",
    "ServicesRunner": "api.runner",
    "Scan": "api.scan",
    "Table": "api.table",
    "AlreadyExists": "model.errors",
    "CommitStateUnknown": "model.errors",
    "Conflict": "model.errors",
    "Corrupt": "model.errors",
    "Denied": "model.errors",
    "HistoryGone": "model.errors",
    "InstantNotFound": "model.errors",
    "Invalid": "model.errors",
    "InvalidExpression": "model.errors",
    "InvalidOption": "model.errors",
    "InvalidPath": "model.errors",
    "LakewrightError": "model.errors",
    "MissingExtra": "model.errors",
    "NotFound": "model.errors",
    "SnapshotGone": "model.errors",
    "TableNotFound": "model.errors",
    "Unavailable": "model.errors",
    "UnknownColumn": "model.errors",
    "Unsupported": "model.errors",
    "col": "model.expression.build",
    "lit": "model.expression.build",
    "BucketRule": "model.bucket_rules.rules",
    "BucketRules": "model.bucket_rules.rules",
    "register_rule": "model.bucket_rules.compiled",
    "RescalePlan": "actions.buckets.rescale_plan",
    "RescaleResult": "actions.buckets.rescale",
    "ServicePlan": "actions.services.plan",
    "UpgradePlan": "actions.services.upgrade_plan",
    "UpgradeResult": "actions.services.upgrade_plan",
    "ServiceResult": "model.services",
    "ServiceRun": "model.services",
    "Operation": "model.writing",
    "PartitionWritten": "model.writing",
    "WriteResult": "model.writing",
    "Merged": "table.merge.merger",
    "RecordMerger": "table.merge.merger",
    "register_merger": "table.merge.merger",
}

__all__ = [  # noqa: RUF022 - the order of the guide: doors first, then nouns, then errors
    "connect",
    "open_table",
    "create_table",
    "col",
    "lit",
    "register_merger",
    "register_rule",
    "BucketRule",
    "BucketRules",
    "Lake",
    "Merged",
    "Operation",
    "PartitionWritten",
    "RecordMerger",
    "RescalePlan",
    "RescaleResult",
    "Scan",
    "ServicePlan",
    "ServiceResult",
    "ServiceRun",
    "ServicesRunner",
    "Table",
    "UpgradePlan",
    "UpgradeResult",
    "WriteResult",
    "AlreadyExists",
    "CommitStateUnknown",
    "Conflict",
    "Corrupt",
    "Denied",
    "HistoryGone",
    "InstantNotFound",
    "Invalid",
    "InvalidExpression",
    "InvalidOption",
    "InvalidPath",
    "LakewrightError",
    "MissingExtra",
    "NotFound",
    "SnapshotGone",
    "TableNotFound",
    "Unavailable",
    "UnknownColumn",
    "Unsupported",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'lakewright' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"lakewright.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
