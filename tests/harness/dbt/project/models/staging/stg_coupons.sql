with source as (

    select * from {{ source('shop', 'coupons') }}

),

renamed as (

    select
        code as coupon_code,
        kind as coupon_kind,
        coalesce(percent_off, 0) as percent_off,
        starts_on,
        ends_on

    from source

)

select * from renamed
