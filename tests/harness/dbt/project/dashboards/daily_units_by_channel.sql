-- Sales: units and revenue by day and channel
select
    order_date,
    sales_channel,
    sum(units) as units,
    sum(net_revenue) as net_revenue
from fct_daily_sales
where order_date between '2024-03-01' and '2024-03-31'
group by order_date, sales_channel
order by order_date, sales_channel;
