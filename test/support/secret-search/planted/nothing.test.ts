import { expect, it } from 'vitest'
import { serve } from '../../receiver/serve.js'

it('sends a secret and writes something else', async () => {
  const { url, close } = await serve((_request, response) => void response.end())
  const authorization = `Bearer ${crypto.randomUUID()}`
  expect((await fetch(url, { headers: { authorization } })).status).toBe(200)
  console.log('answered with 200')
  await close()
})
