with source as (

    select * from {{ source('shop', 'orders') }}

),

renamed as (

    select
        id as order_id,
        customer_id,
        lower(status) as order_status,
        sales_channel,
        coupon_code,
        shipping_fee,
        coalesce(is_gift, false) as is_gift,
        ordered_at,
        cast(ordered_at as date) as order_date

    from source
    where status <> 'test'

)

select * from renamed
