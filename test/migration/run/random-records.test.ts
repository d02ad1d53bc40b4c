import { vi } from 'vitest'

// The same test with few records: thousands of them are a run of their own (`--project migration`).
vi.setConfig({ testTimeout: 300_000 })
vi.stubEnv('RANDOM_RECORDS', process.env['RANDOM_RECORDS'] ?? '60')
await import('../../faults/migration/random-records.test.js')
