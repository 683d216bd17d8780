package relationalcache;

import org.apache.spark.sql.catalyst.analysis.ExecuteImmediateQuery;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** EXECUTE IMMEDIATE, before it is resolved. */
final class Immediate {
    private Immediate() {
    }

    static boolean is(TreeNode node) {
        return node instanceof ExecuteImmediateQuery;
    }
}
