import { expect, it } from 'vitest'
import { addressFault } from '../../src/base/address.js'

it.each([
  'https://core.example/auth/jwt/jwks.json',
  'http://localhost:3000/jwks.json',
  'http://127.0.0.1/jwks.json',
  'http://127.255.3.4/jwks.json',
  'http://2130706433/jwks.json',
  'http://[::1]:8080/jwks.json',
])('takes %s', (address) => {
  expect(addressFault(address, false)).toBeUndefined()
})

it.each([
  ['http://core.example/jwks.json', /https:/],
  ['http://localhost.core.example/jwks.json', /https:/],
  ['http://127.0.0.1.core.example/jwks.json', /https:/],
  ['http://128.0.0.1/jwks.json', /https:/],
  ['http://[::2]/jwks.json', /https:/],
  ['ftp://core.example/jwks.json', /absolute https:/],
  ['file:///etc/jwks.json', /absolute https:/],
  ['/auth/jwt/jwks.json', /absolute https:/],
  ['core.example', /absolute https:/],
  ['https://user@core.example/', /user name/],
  ['https://:secret@core.example/', /password/],
])('refuses %s and says what is wrong', (address, fault) => {
  expect(addressFault(address, false)).toMatch(fault)
})

it('takes http: anywhere once that is allowed, but no password and no other scheme', () => {
  expect(addressFault('http://core.internal/jwks.json', true)).toBeUndefined()
  expect(addressFault('http://user:secret@core.internal/', true)).toMatch(/password/)
  expect(addressFault('data:application/json,{}', true)).toMatch(/absolute/)
})

it('never repeats the address, which may hold a secret', () => {
  expect(addressFault('https://user:secret@core.example/', false)).not.toContain('secret')
})
