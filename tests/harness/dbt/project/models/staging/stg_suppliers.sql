with source as (

    select * from {{ source('shop', 'suppliers') }}

),

renamed as (

    select
        id as supplier_id,
        name as supplier_name,
        country_code as supplier_country_code

    from source

)

select * from renamed
