// Writes `express-service-auth/postgres/schema.sql` into the package that was built.
import { writeFileSync } from 'node:fs'
import { migration } from '../dist/stores/postgres/schema.js'

writeFileSync(new URL('../dist/stores/postgres/schema.sql', import.meta.url), migration())
