SELECT channel, item, return_ratio, return_rank
FROM (
  SELECT 'web' AS channel, web.item AS item, web.return_ratio AS return_ratio,
    RANK() OVER (ORDER BY web.return_ratio) AS return_rank
  FROM (
    SELECT ws.ws_item_sk AS item,
      CAST(SUM(COALESCE(wr.wr_return_quantity, 0)) AS DECIMAL(15,4))
        / CAST(SUM(COALESCE(ws.ws_quantity, 0)) AS DECIMAL(15,4)) AS return_ratio
    FROM web_sales ws LEFT OUTER JOIN web_returns wr
        ON ws.ws_order_number = wr.wr_order_number AND ws.ws_item_sk = wr.wr_item_sk, date_dim
    WHERE wr.wr_return_amt > 10
      AND ws.ws_net_paid > 0
      AND ws_sold_date_sk = d_date_sk
      AND d_year = 2001 AND d_moy = 12
    GROUP BY ws.ws_item_sk) web
  UNION
  SELECT 'store' AS channel, st.item AS item, st.return_ratio AS return_ratio,
    RANK() OVER (ORDER BY st.return_ratio) AS return_rank
  FROM (
    SELECT sts.ss_item_sk AS item,
      CAST(SUM(COALESCE(sr.sr_return_quantity, 0)) AS DECIMAL(15,4))
        / CAST(SUM(COALESCE(sts.ss_quantity, 0)) AS DECIMAL(15,4)) AS return_ratio
    FROM store_sales sts LEFT OUTER JOIN store_returns sr
        ON sts.ss_ticket_number = sr.sr_ticket_number AND sts.ss_item_sk = sr.sr_item_sk,
      date_dim
    WHERE sr.sr_return_amt > 10
      AND sts.ss_net_paid > 0
      AND ss_sold_date_sk = d_date_sk
      AND d_year = 2001 AND d_moy = 12
    GROUP BY sts.ss_item_sk) st) x
WHERE return_rank <= 10
ORDER BY 1, 4, 2
LIMIT 100
