with source as (

    select * from {{ source('shop', 'reviews') }}

),

renamed as (

    select
        id as review_id,
        product_id,
        customer_id,
        rating,
        body,
        cast(created_at as date) as review_date

    from source

)

select * from renamed
