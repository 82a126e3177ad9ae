"""The verbs that change a table's version; ``Table`` has them."""

from typing import Literal, overload

from lakewright.actions.services.upgrade_plan import UpgradePlan, UpgradeResult
from lakewright.actions.services.upgrade_survey import check_version
from lakewright.actions.services.upgrading import plan_upgrade, upgrade
from lakewright.api.maintaining import Options
from lakewright.api.services import Serviceable
from lakewright.model.errors import Invalid


class Upgradable(Serviceable):
    """Moving a table between the versions 6, 8 and 9."""

    @overload
    def upgrade(
        self,
        version: int = ...,
        *,
        dry_run: Literal[False] = ...,
        options: Options | None = ...,
    ) -> UpgradeResult: ...
    @overload
    def upgrade(
        self, version: int = ..., *, dry_run: Literal[True], options: Options | None = ...
    ) -> UpgradePlan: ...
    def upgrade(
        self, version: int = 9, *, dry_run: bool = False, options: Options | None = None
    ) -> UpgradeResult | UpgradePlan:
        """Give the table another version, newer or older; with ``dry_run`` say what that takes.

        Rows, history, savepoints and settings stay. Between version 6 and the later ones the
        logs of a merge-on-read table are compacted first. ``Unsupported`` names what stands in
        the way, such as a metadata table. Writers that opened the table before meet a
        ``Conflict``. One that was cut off is finished by calling it again.
        """
        with self._servicing(options) as work:
            return plan_upgrade(work, version) if dry_run else upgrade(work, version)

    @overload
    def downgrade(
        self, version: int, *, dry_run: Literal[False] = ..., options: Options | None = ...
    ) -> UpgradeResult: ...
    @overload
    def downgrade(
        self, version: int, *, dry_run: Literal[True], options: Options | None = ...
    ) -> UpgradePlan: ...
    def downgrade(
        self, version: int, *, dry_run: bool = False, options: Options | None = None
    ) -> UpgradeResult | UpgradePlan:
        """Give the table an older version: ``upgrade``, which refuses to go up."""
        with self._servicing(options) as work:
            check_version(version)
            now = work.state.config.version
            if version > now:
                raise Invalid(
                    f"version {version} is newer than {now}, which the table has.",
                    next_step=f"Call upgrade({version}).",
                    version=version,
                )
            return plan_upgrade(work, version) if dry_run else upgrade(work, version)
