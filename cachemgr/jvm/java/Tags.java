package relationalcache;

import org.apache.spark.sql.catalyst.trees.TreeNodeTag;

/** The marks that we leave on plan nodes. */
public final class Tags {
    /** On the root of what we put into a plan: the relations of the subtree that stood there. */
    public static final TreeNodeTag SUBSTITUTED = new TreeNodeTag("relationalcache.substituted");
    /** On a plan's nodes: the query carries a hint given through the DataFrame API. */
    public static final TreeNodeTag HINT = new TreeNodeTag("relationalcache.hint");
    /** On the leaves of a plan that was decided on, the query (`Moment.query`): optimising it again there asks nobody again. */
    public static final TreeNodeTag DECIDED = new TreeNodeTag("relationalcache.decided");
    /** On what Planned.mark says of a plan that was asked about: which decision it was, the last one if there were several. */
    public static final TreeNodeTag ASKED = new TreeNodeTag("relationalcache.asked");
    /** On the leaves of the plan that `Hook.capture` is after. */
    public static final TreeNodeTag CAPTURED = new TreeNodeTag("relationalcache.captured");

    /** On the leaves of a subquery: with each of its rows once, as below EXISTS and IN, it may be answered from a cache. */
    public static final TreeNodeTag SERVED_ONCE = new TreeNodeTag("relationalcache.servedOnce");

    public Tags() {
    }
}
