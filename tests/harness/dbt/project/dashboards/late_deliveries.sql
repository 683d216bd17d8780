-- Operations: carriers by their share of late deliveries
select
    carrier,
    sum(shipments) as shipments,
    sum(late_shipments) / nullif(sum(delivered), 0) as late_rate,
    sum(total_days_to_ship) / nullif(sum(shipped), 0) as average_days_to_ship,
    max(slowest_transit) as slowest_transit
from fct_delivery_performance
where order_month >= date '2024-01-01'
group by carrier
having sum(shipments) >= 20
order by late_rate desc;
