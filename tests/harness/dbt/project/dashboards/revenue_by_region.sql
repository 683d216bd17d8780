-- Executive overview: this year by region
select
    region,
    sum(net_revenue) as net_revenue,
    sum(orders) as orders,
    sum(refunds) / nullif(sum(net_revenue), 0) as refund_rate
from fct_monthly_revenue
where order_month between '2024-01-01' and '2024-12-01'
group by region
order by net_revenue desc;
