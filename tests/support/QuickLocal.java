package lakewright;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's local files with their checksums, but permissions need no process of chmod or ls. */
public class QuickLocal extends LocalFileSystem {
  public QuickLocal() {
    super(new Raw());
  }

  public static class Raw extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws IOException {
      Files.setPosixFilePermissions(
          pathToFile(path).toPath(), PosixFilePermissions.fromString(permission.toString()));
    }

    public FileStatus getFileStatus(Path path) throws IOException {
      return known(super.getFileStatus(path));
    }

    public FileStatus[] listStatus(Path path) throws IOException {
      FileStatus[] found = super.listStatus(path);
      for (int i = 0; i < found.length; i++) {
        found[i] = known(found[i]);
      }
      return found;
    }

    /** What Hadoop found, with permissions: its own status asks ls for them when it is asked. */
    private FileStatus known(FileStatus found) throws IOException {
      if (found.getClass() == FileStatus.class) {
        return found;
      }
      java.nio.file.Path file = pathToFile(found.getPath()).toPath();
      String permissions = PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
      return new FileStatus(
          found.getLen(),
          found.isDirectory(),
          found.getReplication(),
          found.getBlockSize(),
          found.getModificationTime(),
          found.getAccessTime(),
          FsPermission.valueOf((found.isDirectory() ? "d" : "-") + permissions),
          "",
          "",
          found.getPath());
    }
  }
}
