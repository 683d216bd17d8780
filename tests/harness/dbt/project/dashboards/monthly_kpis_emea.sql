-- Regional KPIs: one region's table as it is in the mart
select order_month, orders, customers, net_revenue, revenue_after_refunds, average_order_value, refund_rate
from fct_monthly_revenue
where region = 'EMEA'
order by order_month desc
limit 12;
