with source as (

    select * from {{ source('shop', 'categories') }}

),

renamed as (

    select
        id as category_id,
        name as category_name,
        department

    from source

)

select * from renamed
