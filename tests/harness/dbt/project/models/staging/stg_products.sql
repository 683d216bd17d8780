with source as (

    select * from {{ source('shop', 'products') }}

),

renamed as (

    select
        id as product_id,
        sku,
        name as product_name,
        category_id,
        supplier_id,
        list_price,
        unit_cost,
        is_active,
        cast(created_at as date) as launched_on

    from source

)

select * from renamed
