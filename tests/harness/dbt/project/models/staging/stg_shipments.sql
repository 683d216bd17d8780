with source as (

    select * from {{ source('shop', 'shipments') }}

),

renamed as (

    select
        id as shipment_id,
        order_id,
        carrier,
        promised_date,
        cast(shipped_at as date) as shipped_date,
        cast(delivered_at as date) as delivered_date,
        case
            when delivered_at is not null then 'delivered'
            when shipped_at is not null then 'in transit'
            else 'pending'
        end as shipment_status

    from source

)

select * from renamed
