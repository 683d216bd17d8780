with source as (

    select * from {{ source('shop', 'ad_spend') }}

),

renamed as (

    select
        spend_date,
        channel,
        campaign,
        impressions,
        clicks,
        cost as spend

    from source

)

select * from renamed
