-- Executive overview: the tile "last 30 days"
select
    sales_channel,
    count(*) as orders,
    sum(order_total) as revenue
from fct_orders
where order_date >= current_date() - interval 30 days
group by sales_channel;
