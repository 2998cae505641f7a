// `k6/secrets`: the environment is the source. What was got is in no line that the script writes.
const host = globalThis.__k6;

const get = async (name) => {
  const value = globalThis.__ENV[name];
  if (value === undefined) throw new Error(`there is no secret ${name}; give a run the environment variable ${name}`);
  host.secret(value);
  return value;
};

export { get };
export const source = () => ({ get });

export default { get, source };
