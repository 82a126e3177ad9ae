"""Hadoop's local file system without the processes that it starts for permissions."""

from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("QuickLocal.java")


def use(session: Any) -> None:
    """From now on all of the session's JVM uses ``QuickLocal.java`` for ``file:``.

    Hadoop without its native library starts ``chmod`` for each file that it makes, and for its
    checksum, and ``ls`` for many that it looks at. For small tables that is a third of the work.
    """
    java = session.sparkContext._jvm  # noqa: SLF001  (no public way to a JVM)
    hadoop = java.org.apache.hadoop
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.cook(SOURCE.read_text())
    settings = hadoop.conf.Configuration()
    settings.setClassLoader(compiler.getClassLoader())
    settings.set("fs.file.impl", "lakewright.QuickLocal")
    # One per scheme is kept; whoever asks gets this one, whatever their own settings say.
    hadoop.fs.FileSystem.closeAll()
    made = hadoop.fs.FileSystem.get(java.java.net.URI("file:///"), settings)
    assert made.getClass().getName() == "lakewright.QuickLocal"
