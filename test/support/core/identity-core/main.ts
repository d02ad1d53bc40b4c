import { startIdentityCore } from './identity-core.js'

// A core in a process of its own, which a test may kill. Its folder keeps what it has acknowledged.

const {
  IDENTITY_CORE_PORT = '0',
  IDENTITY_CORE_API_KEY: apiKey,
  IDENTITY_CORE_DATABASE: database,
  BULK_IMPORT_INTERVAL_MS = '300000',
} = process.env

const core = await startIdentityCore({
  apiKey,
  port: Number(IDENTITY_CORE_PORT),
  database,
  job: { intervalMs: Number(BULK_IMPORT_INTERVAL_MS) },
})
console.log(`identity-core: ${core.url} (issuer: ${core.issuer})`)
