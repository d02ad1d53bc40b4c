export const API_KEY = 'the-key-of-this-test'
export const API_DOMAIN = 'https://api.example.com'

export const CLAIMS = {
  aud: 'orders',
  sub: 'billing',
  source: 'microservice',
  token_type: 'service-access',
  permissions: ['orders:read', 'orders:write'],
}
