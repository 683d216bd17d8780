with source as (

    select * from {{ source('shop', 'customers') }}

),

renamed as (

    select
        id as customer_id,
        trim(concat(coalesce(first_name, ''), ' ', coalesce(last_name, ''))) as full_name,
        lower(email) as email,
        country_code,
        coalesce(signup_channel, 'unknown') as signup_channel,
        marketing_opt_in,
        created_at as signed_up_at,
        cast(created_at as date) as signup_date,
        deleted_at is not null as is_deleted

    from source

)

select * from renamed
