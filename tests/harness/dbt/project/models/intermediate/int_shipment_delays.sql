with shipments as (

    select * from {{ ref('stg_shipments') }}

),

orders as (

    select * from {{ ref('stg_orders') }}

)

select
    shipments.shipment_id,
    shipments.order_id,
    shipments.carrier,
    orders.order_date,
    shipments.shipped_date,
    shipments.delivered_date,
    shipments.shipment_status,
    datediff(shipments.shipped_date, orders.order_date) as days_to_ship,
    datediff(shipments.delivered_date, shipments.shipped_date) as days_in_transit,
    case
        when shipments.delivered_date is null then null
        when shipments.delivered_date > shipments.promised_date then 1
        else 0
    end as is_late

from shipments
inner join orders on shipments.order_id = orders.order_id
