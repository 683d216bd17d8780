SELECT DISTINCT i_product_name
FROM item i1
WHERE i_manufact_id BETWEEN 738 AND 738 + 40
  AND (
    SELECT COUNT(*) AS item_cnt
    FROM item
    WHERE (i_manufact = i1.i_manufact AND i_category = 'Women'
        AND (i_color = 'powder' OR i_color = 'khaki') AND (i_units = 'Ounce' OR i_units = 'Oz'))
      OR (i_manufact = i1.i_manufact AND i_category = 'Men'
        AND (i_color = 'brown' OR i_color = 'pale'))) > 0
ORDER BY i_product_name
LIMIT 100
