package relationalcache.tests;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * The files of this machine as {@code flaky:/path}, as a storage that fails as a script says. The
 * script is read anew for each operation, from the file that {@code fs.flaky.script} names; none is
 * a storage in good health. Each line is
 *
 * <pre>operation[,operation…]|*  regular expression found in the path  what happens  [share]</pre>
 *
 * of which the first that fits counts. Operations are open, create, rename, delete, list, status
 * and mkdirs. What happens is denied, unavailable (503), timeout, away (nobody listens), full, or
 * slow:milliseconds, after which it goes on. The share of the operations that it happens to is 1
 * unless it is given.
 */
public final class FlakyFileSystem extends RawLocalFileSystem {
  private static final URI NAME = URI.create("flaky:///");

  private String script;

  @Override
  public URI getUri() {
    return NAME;
  }

  @Override
  public String getScheme() {
    return NAME.getScheme();
  }

  @Override
  public void initialize(URI uri, Configuration conf) throws IOException {
    super.initialize(uri, conf);
    setConf(conf);
    script = conf.get("fs.flaky.script");
  }

  @Override
  public FSDataInputStream open(Path path, int buffer) throws IOException {
    happens("open", path);
    return super.open(path, buffer);
  }

  @Override
  public FSDataOutputStream append(Path path, int buffer, Progressable progress)
      throws IOException {
    happens("create", path);
    return super.append(path, buffer, progress);
  }

  @Override
  public FSDataOutputStream create(
      Path path,
      boolean overwrite,
      int buffer,
      short replication,
      long block,
      Progressable progress)
      throws IOException {
    happens("create", path);
    return super.create(path, overwrite, buffer, replication, block, progress);
  }

  @Override
  public FSDataOutputStream create(
      Path path,
      FsPermission permission,
      boolean overwrite,
      int buffer,
      short replication,
      long block,
      Progressable progress)
      throws IOException {
    happens("create", path);
    return super.create(path, permission, overwrite, buffer, replication, block, progress);
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    happens("rename", from);
    if (!pathToFile(from).isFile() || pathToFile(to).isDirectory()) {
      return super.rename(from, to);
    }
    // of two processes that write one commit, one alone must succeed
    try {
      Files.createLink(pathToFile(to).toPath(), pathToFile(from).toPath());
    } catch (FileAlreadyExistsException there) {
      return false;
    }
    return pathToFile(from).delete();
  }

  @Override
  public boolean delete(Path path, boolean recursive) throws IOException {
    happens("delete", path);
    return super.delete(path, recursive);
  }

  @Override
  public FileStatus[] listStatus(Path path) throws IOException {
    happens("list", path);
    return super.listStatus(path);
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    happens("status", path);
    return super.getFileStatus(path);
  }

  @Override
  public FileStatus getFileLinkStatus(Path path) throws IOException {
    return getFileStatus(path);
  }

  @Override
  public boolean mkdirs(Path path) throws IOException {
    happens("mkdirs", path);
    return super.mkdirs(path);
  }

  @Override
  public boolean mkdirs(Path path, FsPermission permission) throws IOException {
    happens("mkdirs", path);
    return super.mkdirs(path, permission);
  }

  /** As in QuickFileSystem: Hadoop would start a process. */
  @Override
  public void setPermission(Path path, FsPermission permission) throws IOException {
    String mode =
        permission.getUserAction().SYMBOL
            + permission.getGroupAction().SYMBOL
            + permission.getOtherAction().SYMBOL;
    Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(mode));
  }

  private void happens(String operation, Path path) throws IOException {
    String place = path.toUri().getPath();
    for (String line : lines()) {
      String[] words = line.trim().split("\\s+");
      if (words.length < 3 || !fits(words[0], operation)) {
        continue;
      }
      if (!java.util.regex.Pattern.compile(words[1]).matcher(place).find()) {
        continue;
      }
      double share = words.length > 3 ? Double.parseDouble(words[3]) : 1.0;
      if (ThreadLocalRandom.current().nextDouble() < share) {
        fail(words[2], operation, "flaky:" + place);
      }
      return;
    }
  }

  private String[] lines() throws IOException {
    if (script == null) {
      return new String[0];
    }
    try {
      byte[] text = Files.readAllBytes(Paths.get(script));
      return new String(text, StandardCharsets.UTF_8).split("\n");
    } catch (NoSuchFileException | FileNotFoundException none) {
      return new String[0];
    }
  }

  private static boolean fits(String operations, String operation) {
    return operations.equals("*")
        || java.util.Arrays.asList(operations.split(",")).contains(operation);
  }

  private static void fail(String how, String operation, String place) throws IOException {
    String[] parts = how.split(":");
    switch (parts[0]) {
      case "denied":
        throw new AccessDeniedException(
            place, operation, "Access Denied (Service: Flaky, Status Code: 403)");
      case "unavailable":
        throw new IOException(
            operation + " on " + place + ": Slow Down (Service: Flaky, Status Code: 503)");
      case "timeout":
        throw new SocketTimeoutException(operation + " on " + place + ": Read timed out");
      case "away":
        throw new ConnectException(operation + " on " + place + ": Connection refused");
      case "full":
        throw new IOException(operation + " on " + place + ": No space left on device");
      case "slow":
        try {
          Thread.sleep(Long.parseLong(parts[1]));
        } catch (InterruptedException stopped) {
          throw new InterruptedIOException(operation + " on " + place + ": interrupted");
        }
        return;
      default:
        throw new IllegalArgumentException("the script of the flaky files knows no " + how);
    }
  }
}
