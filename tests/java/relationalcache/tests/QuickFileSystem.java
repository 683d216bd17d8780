package relationalcache.tests;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.local.LocalConfigKeys;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local file system. Without its native library Hadoop starts a process, chmod or readlink,
 * for each file that it makes or renames, some forty in a test; this one asks Java.
 */
public final class QuickFileSystem extends LocalFileSystem {
  public QuickFileSystem() {
    super(new Raw());
  }

  private static final class Raw extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      String mode =
          permission.getUserAction().SYMBOL
              + permission.getGroupAction().SYMBOL
              + permission.getOtherAction().SYMBOL;
      Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(mode));
    }

    @Override
    public FileStatus getFileLinkStatus(Path path) throws IOException {
      // no test has links
      return getFileStatus(path);
    }
  }

  private static final class RawContext extends DelegateToFileSystem {
    RawContext(Configuration conf) throws Exception {
      super(FsConstants.LOCAL_FS_URI, new Raw(), conf, FsConstants.LOCAL_FS_URI.getScheme(), false);
    }

    @Override
    public int getUriDefaultPort() {
      return -1;
    }

    @Override
    @SuppressWarnings("deprecation")
    public FsServerDefaults getServerDefaults() throws IOException {
      return LocalConfigKeys.getServerDefaults();
    }

    @Override
    public boolean isValidName(String name) {
      return true;
    }
  }

  /** The same as Hadoop's FileContext sees it, by which Delta writes its log. */
  public static final class Context extends ChecksumFs {
    public Context(URI uri, Configuration conf) throws Exception {
      super(new RawContext(conf));
    }
  }
}
