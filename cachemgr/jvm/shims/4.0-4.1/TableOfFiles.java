package relationalcache;

import java.net.URI;

import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat$;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType$;
import org.apache.spark.sql.types.StructType;

/** A table of Delta files as a catalog would know it; a later Spark knows more of one. */
final class TableOfFiles {
    private TableOfFiles() {
    }

    static CatalogTable at(URI place, TableIdentifier name, StructType schema) {
        CatalogTable$ made = CatalogTable$.MODULE$;
        CatalogStorageFormat none = CatalogStorageFormat$.MODULE$.empty();
        CatalogStorageFormat storage = new CatalogStorageFormat(
            Scala.some(place), none.inputFormat(), none.outputFormat(), none.serde(), none.compressed(),
            none.properties());
        return new CatalogTable(
            name, CatalogTableType$.MODULE$.EXTERNAL(), storage, schema, Scala.some("delta"), made.apply$default$6(),
            made.apply$default$7(), made.apply$default$8(), made.apply$default$9(), made.apply$default$10(),
            made.apply$default$11(), made.apply$default$12(), made.apply$default$13(), made.apply$default$14(),
            made.apply$default$15(), made.apply$default$16(), made.apply$default$17(), made.apply$default$18(),
            made.apply$default$19(), made.apply$default$20(), made.apply$default$21());
    }
}
