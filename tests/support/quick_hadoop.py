"""Hadoop without what small tables on local files do not need, but pay for with each task."""

import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

SOURCE = Path(__file__).with_name("QuickLocal.java")
# The others are of object stores, security, YARN: 1,100 settings that each task reads anew.
SETTINGS = (
    "file.",
    "fs.AbstractFileSystem.",
    "fs.automatic.close",
    "fs.defaultFS",
    "io.",
    "mapreduce.fileoutputcommitter.",
    "mapreduce.input.",
    "mapreduce.output.",
)


def shorten_settings(jars: Path, folder: Path) -> None:
    """Write what is of use of Hadoop's default settings; the folder goes before its jars."""
    (jar,) = jars.glob("hadoop-client-api-*.jar")
    with zipfile.ZipFile(jar) as packed:
        for service in ("core", "mapred", "yarn"):
            root = ElementTree.fromstring(packed.read(f"{service}-default.xml"))
            for setting in root.findall("property"):
                if not setting.findtext("name", "").strip().startswith(SETTINGS):
                    root.remove(setting)
                elif (words := setting.find("description")) is not None:
                    setting.remove(words)
            (folder / f"{service}-default.xml").write_bytes(ElementTree.tostring(root))
            # It is not there, and all jars would be searched for it again and again.
            (folder / f"{service}-site.xml").write_text("<configuration/>")


def use_quick_files(session: Any) -> None:
    """From now on all of the session's JVM uses ``QuickLocal.java`` for ``file:``.

    Hadoop without its native library starts ``chmod`` for each file that it makes, and for its
    checksum, and ``ls`` for many that it looks at. For small tables that is a third of the work.
    """
    java = session.sparkContext._jvm
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
