with source as (

    select * from {{ source('shop', 'countries') }}

),

renamed as (

    select
        code as country_code,
        name as country_name,
        region,
        currency

    from source

)

select * from renamed
