with reviews as (

    select * from {{ ref('stg_reviews') }}

)

select
    product_id,
    count(*) as review_count,
    round(avg(rating), 2) as average_rating,
    sum(case when rating <= 2 then 1 else 0 end) as negative_reviews,
    max(review_date) as last_review_date

from reviews
group by product_id
