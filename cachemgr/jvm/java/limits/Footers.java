package relationalcache.limits;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;

import relationalcache.Scala;

/** Files of a table that have some number of rows, by their footers, where its log does not tell how many they have. */
final class Footers {
    /** So many are read while a query is planned, at most. */
    private static final int MOST = 10;
    /** Rows of small files take more bytes each. */
    private static final int SLACK = 4;

    private Footers() {
    }

    /** The first files of a scan that have that many rows; null where these are all, or too many to look. */
    static DeltaScan picked(PreparedDeltaFileIndex index, long rows) {
        DeltaScan scan = index.preparedScan();
        List<?> files = Scala.list(scan.files());
        Configuration conf = index.deltaLog().newDeltaHadoopConf();
        int most = Math.min(MOST, files.size() - 1);
        double all = files.subList(0, most).stream().mapToLong(each -> ((AddFile) each).size()).sum();
        long found = 0;
        long bytes = 0;
        for (int i = 0; i < most; i++) {
            AddFile file = (AddFile) files.get(i);
            found += live(index.absolutePath(file.path()), file, conf);
            bytes += file.size();
            if (found >= rows) {
                return PickedFileIndex.scan(scan, Scala.seq(files.subList(0, i + 1)), bytes);
            }
            if (found > 0 && found / (double) bytes * all * SLACK < rows) {
                return null; // so many files have not as many rows, if they are as these
            }
        }
        return null;
    }

    private static long live(Path path, AddFile file, Configuration conf) {
        try (ParquetFileReader reader = ParquetFileReader.open(HadoopInputFile.fromPath(path, conf))) {
            long deleted = file.deletionVector() == null ? 0 : file.deletionVector().cardinality();
            return Math.max(0, reader.getRecordCount() - deleted);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
