with source as (

    select * from {{ source('shop', 'order_items') }}

),

renamed as (

    select
        order_id,
        line_no,
        product_id,
        quantity,
        unit_price,
        coalesce(discount_amount, 0) as discount_amount,
        quantity * unit_price as gross_amount,
        quantity * unit_price - coalesce(discount_amount, 0) as net_amount

    from source

)

select * from renamed
