with delays as (

    select * from {{ ref('int_shipment_delays') }}

)

select
    carrier,
    cast(date_trunc('month', order_date) as date) as order_month,
    count(*) as shipments,
    count(delivered_date) as delivered,
    sum(is_late) as late_shipments,
    sum(days_to_ship) as total_days_to_ship,
    count(days_to_ship) as shipped,
    max(days_in_transit) as slowest_transit,
    sum(is_late) / nullif(count(delivered_date), 0) as late_rate

from delays
group by carrier, cast(date_trunc('month', order_date) as date)
