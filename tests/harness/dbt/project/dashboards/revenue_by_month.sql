-- Executive overview: revenue and orders by month
select
    order_month,
    count(*) as orders,
    sum(net_amount) as net_revenue,
    sum(refunded_amount) as refunds
from fct_orders
where order_status <> 'cancelled'
  and order_date >= date '2024-01-01'
  and order_date < date '2025-01-01'
group by order_month
order by order_month;
