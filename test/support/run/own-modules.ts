import { afterAll, vi } from 'vitest'

// A worker runs several test files, to save processes and the loading of packages. Each file still loads the
// modules of this project again, so that no state of a module reaches the next file.
afterAll(() => void vi.resetModules())
